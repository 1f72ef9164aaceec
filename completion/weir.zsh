#compdef weir
# SPDX-License-Identifier: MIT
# zsh: what may come next on weir's command line, as weir itself says.
local line
local -a found
while IFS= read -r line; do
    case $line in
        :files) _files ;;
        :folders) _files -/ ;;
        *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
done < <($words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
(( $#found )) && _describe weir found
