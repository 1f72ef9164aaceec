# SPDX-License-Identifier: MIT
# fish: what may come next on weir's command line, as weir itself says.
function __weir_next
    set -l words (commandline -opc) (commandline -ct)
    set -l word $words[-1]
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $word
            case :folders
                __fish_complete_directories $word
            case '*'
                echo $line
        end
    end
end
complete -c weir -f -a '(__weir_next)'
