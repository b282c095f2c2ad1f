# Completion of hermes-gateway for bash. `./x reference` writes it.
_hermes_gateway() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} place="" words="" at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "$place ${COMP_WORDS[at]}" in
            ' run' | ' chat' | ' status' | ' open' | ' stop' | ' reload' | ' doctor' | ' security' | ' security audit' | ' hooks' | ' hooks list' | ' hooks info' | ' hooks stats' | ' hooks logs' | ' hooks new' | ' hooks check' | ' hooks schema' | ' hooks test' | ' hooks fire' | ' hooks enable' | ' hooks disable' | ' hooks reload' | ' hooks reset' | ' hooks trust' | ' hooks deps' | ' hooks install' | ' hooks update' | ' hooks outdated' | ' hooks remove' | ' hooks freeze' | ' hooks sync' | ' hooks search' | ' hooks index' | ' hooks index add' | ' hooks index list' | ' hooks index remove' | ' hooks publish' | ' hooks dead-letters' | ' hooks dead-letters list' | ' hooks dead-letters show' | ' hooks dead-letters retry' | ' hooks dead-letters prune' | ' skills' | ' skills list' | ' skills install' | ' skills update' | ' skills remove' | ' skills search' | ' skills publish' | ' events' | ' events list' | ' events tail' | ' events replay' | ' setup' | ' setup model' | ' setup service' | ' setup telegram' | ' setup discord' | ' setup slack' | ' service' | ' service install' | ' service uninstall' | ' service status' | ' service logs' | ' platform' | ' platform list' | ' platform pause' | ' platform resume' | ' platform restart' | ' platform probe' | ' approvals' | ' approvals list' | ' approvals yes' | ' approvals no' | ' approvals say' | ' pairing' | ' pairing list' | ' pairing approve' | ' pairing invite' | ' pairing uninvite' | ' pairing revoke' | ' people' | ' people list' | ' people show' | ' people export' | ' people forget' | ' keys' | ' keys list' | ' keys new' | ' keys revoke' | ' activity' | ' activity list' | ' activity export' | ' usage' | ' send' | ' sessions' | ' sessions list' | ' sessions show' | ' sessions search' | ' sessions export' | ' sessions stop' | ' sessions delete' | ' sessions rebuild' | ' backup' | ' backup create' | ' backup verify' | ' backup restore' | ' upgrade' | ' uninstall' | ' demo' | ' logs' | ' config' | ' config check' | ' config show' | ' config path' | ' config schema' | ' completions') place="$place ${COMP_WORDS[at]}" ;;
        esac
    done
    case "$place $before" in
        ' run --log-level') words="debug info warning error" ;;
        ' hooks new --lang') words="python sh node" ;;
        ' setup model --provider') words="openrouter openai anthropic ollama lmstudio" ;;
        ' setup telegram --shell') words="ask sandboxed allow off" ;;
        ' setup discord --shell') words="ask sandboxed allow off" ;;
        ' setup slack --shell') words="ask sandboxed allow off" ;;
        ' approvals yes --for') words="session always" ;;
        ' pairing approve --as') words="owner admin operator user" ;;
        ' pairing invite --as') words="owner admin operator user" ;;
        ' keys new --as') words="user operator" ;;
        ' usage --by') words="person model day hook session" ;;
        ' sessions export --format') words="markdown json" ;;
        ' logs --level') words="debug info warning error critical" ;;
        *)
            case $place in
                '') words="run chat status open stop reload doctor security hooks skills events setup service platform approvals pairing people keys activity usage send sessions backup upgrade uninstall demo logs config completions --home --version --help" ;;
                ' run') words="--help --log-level" ;;
                ' chat') words="--help --message --session --json" ;;
                ' status') words="--help --json" ;;
                ' open') words="--help --end --json" ;;
                ' stop') words="--help" ;;
                ' reload') words="--help --json" ;;
                ' doctor') words="--help --hermes --load --json" ;;
                ' security') words="audit --help" ;;
                ' security audit') words="--help --fix --json" ;;
                ' hooks') words="list info stats logs new check schema test fire enable disable reload reset trust deps install update outdated remove freeze sync search index publish dead-letters --help" ;;
                ' hooks list') words="--help --all --worst --text --json" ;;
                ' hooks info') words="--help --json" ;;
                ' hooks stats') words="--help --all --worst --text --json" ;;
                ' hooks logs') words="--help --lines --follow --json" ;;
                ' hooks new') words="--help --event --intercept --lang --json" ;;
                ' hooks check') words="--help --json" ;;
                ' hooks schema') words="--help" ;;
                ' hooks test') words="--help --event --payload --json" ;;
                ' hooks fire') words="--help --payload --json" ;;
                ' hooks enable') words="--help --json" ;;
                ' hooks disable') words="--help --json" ;;
                ' hooks reload') words="--help --json" ;;
                ' hooks reset') words="--help --json" ;;
                ' hooks trust') words="--help --json" ;;
                ' hooks deps') words="--help --json" ;;
                ' hooks install') words="--help --yes --json" ;;
                ' hooks update') words="--help --check --yes --json" ;;
                ' hooks outdated') words="--help --json" ;;
                ' hooks remove') words="--help --json" ;;
                ' hooks freeze') words="--help --json" ;;
                ' hooks sync') words="--help --yes --json" ;;
                ' hooks search') words="--help --json" ;;
                ' hooks index') words="add list remove --help" ;;
                ' hooks index add') words="--help --key --json" ;;
                ' hooks index list') words="--help --json" ;;
                ' hooks index remove') words="--help --json" ;;
                ' hooks publish') words="--help --source --json" ;;
                ' hooks dead-letters') words="list show retry prune --help" ;;
                ' hooks dead-letters list') words="--help --json" ;;
                ' hooks dead-letters show') words="--help --json" ;;
                ' hooks dead-letters retry') words="--help --json" ;;
                ' hooks dead-letters prune') words="--help --json" ;;
                ' skills') words="list install update remove search publish --help" ;;
                ' skills list') words="--help --json" ;;
                ' skills install') words="--help --yes --json" ;;
                ' skills update') words="--help --check --yes --json" ;;
                ' skills remove') words="--help --json" ;;
                ' skills search') words="--help --json" ;;
                ' skills publish') words="--help --source --json" ;;
                ' events') words="list tail replay --help" ;;
                ' events list') words="--help --json" ;;
                ' events tail') words="--help --number --json" ;;
                ' events replay') words="--help --since --json" ;;
                ' setup') words="model service telegram discord slack --help" ;;
                ' setup model') words="--help --provider --name --base-url --key --no-check" ;;
                ' setup service') words="--help --system" ;;
                ' setup telegram') words="--help --token --allow --home-channel --account --owner --shell --no-hello --no-check" ;;
                ' setup discord') words="--help --token --allow --home-channel --account --owner --shell --no-hello --no-check" ;;
                ' setup slack') words="--help --bot-token --app-token --signing-secret --allow --home-channel --account --owner --shell --no-hello --no-check --manifest" ;;
                ' service') words="install uninstall status logs --help" ;;
                ' service install') words="--help --system" ;;
                ' service uninstall') words="--help --system" ;;
                ' service status') words="--help --system --json" ;;
                ' service logs') words="--help --system --follow --lines" ;;
                ' platform') words="list pause resume restart probe --help" ;;
                ' platform list') words="--help --json" ;;
                ' platform pause') words="--help --json" ;;
                ' platform resume') words="--help --json" ;;
                ' platform restart') words="--help --json" ;;
                ' platform probe') words="--help --json" ;;
                ' approvals') words="list yes no say --help --json" ;;
                ' approvals list') words="--help --json" ;;
                ' approvals yes') words="--help --for --json" ;;
                ' approvals no') words="--help --json" ;;
                ' approvals say') words="--help --json" ;;
                ' pairing') words="list approve invite uninvite revoke --help" ;;
                ' pairing list') words="--help --json" ;;
                ' pairing approve') words="--help --as --json" ;;
                ' pairing invite') words="--help --as --for --json" ;;
                ' pairing uninvite') words="--help --json" ;;
                ' pairing revoke') words="--help --json" ;;
                ' people') words="list show export forget --help" ;;
                ' people list') words="--help --json" ;;
                ' people show') words="--help --json" ;;
                ' people export') words="--help --output" ;;
                ' people forget') words="--help --yes --json" ;;
                ' keys') words="list new revoke --help" ;;
                ' keys list') words="--help --json" ;;
                ' keys new') words="--help --as --agent --json" ;;
                ' keys revoke') words="--help --json" ;;
                ' activity') words="list export --help" ;;
                ' activity list') words="--help --json --last --before --since --who --what" ;;
                ' activity export') words="--help --since --who --what" ;;
                ' usage') words="--help --by --days --person --json" ;;
                ' send') words="--help --to --file --wait --json" ;;
                ' sessions') words="list show search export stop delete rebuild --help" ;;
                ' sessions list') words="--help --platform --limit --after --json" ;;
                ' sessions show') words="--help --limit --before --longest --json" ;;
                ' sessions search') words="--help --limit --after --json" ;;
                ' sessions export') words="--help --format --output" ;;
                ' sessions stop') words="--help --json" ;;
                ' sessions delete') words="--help --yes" ;;
                ' sessions rebuild') words="--help --json" ;;
                ' backup') words="create verify restore --help" ;;
                ' backup create') words="--help --with-env --json" ;;
                ' backup verify') words="--help --json" ;;
                ' backup restore') words="--help --replace --json" ;;
                ' upgrade') words="--help --from --yes" ;;
                ' uninstall') words="--help --yes --purge" ;;
                ' demo') words="--help" ;;
                ' logs') words="--help --follow --lines --level --hook --session --text --since --json" ;;
                ' config') words="check show path schema --help" ;;
                ' config check') words="--help --json" ;;
                ' config show') words="--help --origin --running --json" ;;
                ' config path') words="--help --json" ;;
                ' config schema') words="--help" ;;
                ' completions') words="bash zsh fish --help" ;;
            esac
            ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _hermes_gateway hermes-gateway
