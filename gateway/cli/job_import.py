"""`hermes-gateway jobs import`: each job of Hermes is shown whole, and comes paused if the person agrees.

With `--json`, the jobs are shown on the standard error.
"""

import argparse
import sys
from contextlib import redirect_stdout

from gateway.cli.output import ask_person, print_note, print_text, show_fields, show_json
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import GatewayError
from gateway.jobs.cron_file import CronJob, choose_name, read_cron_jobs
from gateway.logs.text import to_one_line

PAUSED = "they are paused, since Hermes may still run them; stop them there\nthen: hermes-gateway jobs resume NAME"


def take_jobs(args: argparse.Namespace, home: Home) -> int:
    """Show the jobs of Hermes and, if the person agrees, make them; return 1 if one could not be made."""
    found = read_cron_jobs(home.hermes_jobs)
    taken = {one["name"] for one in call_gateway(home.socket, "jobs.list")["jobs"]}
    named = list[CronJob]()
    for one in found:
        name = choose_name(one.params["name"], taken)
        taken.add(name)
        named.append(CronJob({**one.params, "name": name}, one.reason, one.left_out))
    with redirect_stdout(sys.stderr if args.json else sys.stdout):
        show_jobs(named, f"no jobs in {home.hermes_jobs}")
    coming = [one for one in named if not one.reason]
    if coming and not ask_person(f"make {len(coming)} of these {len(named)} jobs, paused?", args.yes):
        return 0
    failed = {one.params["name"]: why for one in coming if (why := make_job(home, one))}
    made = [one.params["name"] for one in coming if one.params["name"] not in failed]
    if args.json:
        left_out = {one.params["name"]: one.left_out for one in named}
        reasons = {one.params["name"]: one.reason for one in named if one.reason}
        show_json({"made": made, "failed": failed, "left_out": left_out, "reasons": reasons})
    for name, why in failed.items() if not args.json else ():
        print_note(to_one_line(f"{name} was not made: {why}".replace("\n", "; ")))
    if made and not args.json:
        print_text(f"made: {', '.join(made)}\n{PAUSED}")
    return int(bool(failed))


def show_jobs(found: list[CronJob], empty: str) -> None:
    """Show each job whole: what it does, when, where its answer goes, and what of it has no place here."""
    for one in found:
        given = one.params
        work = "command" if "command" in given else "text"
        facts = {
            "job": given["name"],
            "when": f"{given['when']} {given.get('zone', '')}".strip(),
            "to": given.get("to", "its history"),
            work: given.get(work, "-"),
            **({"not made": one.reason} if one.reason else {}),
        }
        show_fields([*facts.items(), *(("left out", words) for words in one.left_out)], is_whole=True)
        print_text("")
    if not found:
        print_text(empty)


def make_job(home: Home, job: CronJob) -> str:
    """Make a job, paused; return why that failed, or ""."""
    try:
        call_gateway(home.socket, "jobs.add", **job.params, paused=True)
    except GatewayError as error:
        return str(error)
    return ""
