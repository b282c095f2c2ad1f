// The figures of 24 hours and of the 24 before, from the half hours that the gateways keep.

import { ask, may } from './asking.js'
import { HALF_HOUR, SPANS, sumOf } from './curves.js'

const WORK = ['turns', 'failed', 'tokens', 'cost', 'calls', 'failures']

// null: this login does not see figures.
export async function readDay() {
  return may('figures') ? new Day(await ask('figures')) : null
}

class Day {
  constructor({ now, bounds, spans }) {
    this.bounds = bounds
    this.end = (Math.floor(now / HALF_HOUR) + 1) * HALF_HOUR  // the right edge: where the present half hour ends
    this.begin = this.end - SPANS * HALF_HOUR
    this.spans = this.spread(spans, this.begin)
    this.before = this.spread(spans, this.begin - SPANS * HALF_HOUR)
    for (const name of WORK) this[name] = this.spans.map(one => one?.work[name] ?? 0)
  }

  spread(spans, begin) {
    const found = Array(SPANS).fill(null)
    for (const one of spans) {
      const at = Math.round((one.at - begin) / HALF_HOUR)
      if (at >= 0 && at < SPANS) found[at] = one
    }
    return found
  }

  // The part of durations up to this bound, in seconds, of one half hour or of all; null without any.
  within(part, index = null) {
    const spans = index == null ? this.spans : [this.spans[index]]
    const counts = this.bounds.concat(0).map((_, at) => sumOf(spans.map(one => one?.times?.[at] ?? 0)))
    let left = sumOf(counts) * part
    if (!left) return null
    for (const [at, count] of counts.entries()) {
      const [low, high] = [at ? this.bounds[at - 1] : 0, this.bounds[at] ?? this.bounds.at(-1)]
      if (left <= count) return low + (high - low) * (left / count)
      left -= count
    }
    return this.bounds.at(-1)
  }

  messages(network) {
    return sumOf(this.spans.map(one => one?.messages?.[network] ?? 0))
  }

  // The calls and failures of one hook a half hour; null: it is not one of those with counts of their own.
  of(hook) {
    const found = this.spans.map(one => one?.hooks?.[hook])
    return found.some(Boolean) ? [found.map(one => one?.[0] ?? 0), found.map(one => one?.[1] ?? 0)] : null
  }

  // The hook with most failures, and their number.
  worst() {
    const sums = new Map()
    for (const one of this.spans) for (const [name, [, failed]] of Object.entries(one?.hooks ?? {})) sums.set(name, (sums.get(name) ?? 0) + failed)
    return [...sums].sort((one, other) => other[1] - one[1])[0] ?? ['', 0]
  }

  // Sums that begin anew at the reader's midnight.
  sinceMidnight(name) {
    let sum = 0
    return this.spans.map((one, at) => {
      const time = new Date((this.begin + at * HALF_HOUR) * 1000)
      if (!time.getHours() && time.getMinutes() < 30) sum = 0
      sum += one?.work[name] ?? 0
      return sum
    })
  }
}
