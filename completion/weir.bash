# SPDX-License-Identifier: MIT
# bash: what may come next on weir's command line, as weir itself says.
_weir() {
    local word line cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:1:COMP_CWORD}")

    # bash cuts words at = and :, which is right for neither URLs nor --option=value.
    if declare -F _get_comp_words_by_ref >/dev/null; then
        local cword
        _get_comp_words_by_ref -n =: cur words cword
        words=("${words[@]:1:cword}")
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur") ;;
        :folders) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$cur") ;;
        *) word=${line%%$'\t'*}
           [[ $cur == *=* ]] && word=${word#*=}
           COMPREPLY+=("$word") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}
complete -F _weir weir
