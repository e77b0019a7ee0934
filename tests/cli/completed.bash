# completed.bash COMPLETION_FILE WORD…: what bash offers behind these words, one a line.
completion=$1
shift
source /usr/share/bash-completion/bash_completion
source "$completion"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
read -ra complete <<<"$(complete -p "$(basename "$1")")"
for i in "${!complete[@]}"; do
  [[ ${complete[i]} == -F ]] && "${complete[i + 1]}" "$1" "${@: -1}" "${@: -2:1}"
done
printf '%s\n' "${COMPREPLY[@]}"
