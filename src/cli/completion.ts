/** completion: prints shell completion scripts. */
import { UsageError } from '../program.js';
import type { Command } from './command.js';

const SHELLS: Readonly<Record<string, (commands: readonly Entry[]) => string>> = { bash, zsh, fish };

interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly string[];
}

export function createCompletionCommand(commands: () => readonly Command[], shared: readonly string[]): Command {
  return {
    name: 'completion',
    usage: 'bash|zsh|fish',
    summary: 'Prints a script that completes commands and options in a shell',
    help: '  For bash: source <(vigil completion bash)',
    needsLogin: false,
    arguments: [1, 1],
    async run(_session, _values, [shell = '']) {
      const print = SHELLS[shell];
      if (print === undefined) throw new UsageError(`There is no completion for ${shell}, only for bash, zsh and fish`);
      const entries = commands().map(({ name, summary, options = {} }) => ({
        name,
        summary,
        options: [...Object.keys(options), ...shared].map((option) => `--${option}`),
      }));
      console.log(print(entries));
    },
  };
}

function bash(commands: readonly Entry[]): string {
  const cases = commands.map(({ name, options }) => `    ${name}) words="${options.join(' ')}" ;;`);
  return `_vigil() {
  local words="${commands.map(({ name }) => name).join(' ')}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _vigil vigil`;
}

function zsh(commands: readonly Entry[]): string {
  return `autoload -Uz bashcompinit && bashcompinit\n${bash(commands)}`;
}

function fish(commands: readonly Entry[]): string {
  const lines = commands.flatMap(({ name, summary, options }) => [
    `complete -c vigil -n __fish_use_subcommand -f -a ${name} -d '${summary.replaceAll("'", "\\'")}'`,
    ...options.map((option) => `complete -c vigil -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`),
  ]);
  return lines.join('\n');
}
