#!/usr/bin/env bash
# Whether a job is spelled for Slurm by slurm/job_id.h alone, in what ddprun runs and in what it tells people to type. To
# Slurm's commands the id of one element of a job array is the whole array.
#
#   spelled_once.sh FOLDER      looks at a checkout
#   spelled_once.sh             looks whether it sees each fault
set -euo pipefail

# Who may know the variables. A new place is fine if it compares ids, or makes names from them, and tells Slurm nothing.
knows='^(slurm/(job_id|allocation|worker_variables)\.cc|keeper/killing/orphans\.cc|launcher/in_slurm/srun_here\.cc|operator/ddpctl/(meant_job|ctl_commands|ctl_text)\.cc)$'

# Prints what is wrong in a folder.
look_at() {
    cd "$1"
    local sources texts
    mapfile -t sources < <(find . \( -path './build*' -o -path ./tests \) -prune -o \( -name '*.cc' -o -name '*.h' \) \
        -print | sed 's|^\./||' | sort)
    mapfile -t texts < <(find . -path './build*' -prune -o -path './tests/slurm/spelled_once.sh' -prune -o -type f \
        \( -name '*.md' -o -name '*.sbatch' -o -name '*.sh' -o -name '*.py' \) -print | sort)
    perl -0777 -ne '
        s{^\s*//.*$}{}mg;
        while (/"[^"\n]*\b(?:scontrol|squeue|scancel|sacct|sstat|sattach)\b[^"\n]*"(?:\s*"[^"\n]*")*\s*([+,])\s*([^;,]{1,60})/g) {
            my ($joint, $next) = ($1, $2);
            next if $next =~ /^"/ or $next =~ /^[\w.()>\s-]*(?:spelled|with_parts|sentence)\(\)/;
            next if $next =~ /^(?:slurm::fold_hostlist|to_text)\(/ or $next =~ /^who\.slurm_job_id\b/;
            next if $next =~ /^queued\.spelled\b/; # as squeue has printed it (%i)
            next if $joint eq "," and $next !~ /job|id/i;
            $next =~ s/\s.*//s;
            print "$ARGV: $next is told to Slurm, and is no JobId::spelled()\n";
        }
        while (/slurm_job_id = ([^;,]*)[;,]/g) {
            print "$ARGV: slurm_job_id = $1\n" unless $1 =~ /spelled\(\)$|slurm_job_id$/ or $ARGV =~ m{^keeper/};
        }' "${sources[@]}" /dev/null
    grep -lE '^[^/]*"SLURM_(JOB_?ID|ARRAY_[A-Z_]*)"' "${sources[@]}" /dev/null | grep -vE "$knows" |
        sed 's/$/: knows the variables of the job/' || true
    grep -nE '\b(scontrol|squeue|scancel|sacct)\b[^|;&]*\$(\{?SLURM_JOB_?ID|SLURM_ARRAY_JOB_ID|\{SLURM_ARRAY_JOB_ID\}([^_]|$))' "${texts[@]}" /dev/null |
        grep -v 'scontrol listpids' | # it asks the slurmd of this host, which knows elements by their own ids
        sed 's/$/   (an element of an array needs its task)/' || true
}

if (($# == 1)); then
    wrong=$(look_at "$1")
    [[ -z $wrong ]] || { echo "$wrong"; exit 1; }
    exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root"/{launcher,slurm}
sees() { # what is wrong, file, text
    echo "$3" >"$root/$2"
    [[ -n $(look_at "$root") ]] || { echo "FAILED: does not see $1" >&2; exit 1; }
    rm "$root/$2"
}
fine() { # file, text
    echo "$2" >"$root/$1"
    local wrong; wrong=$(look_at "$root")
    [[ -z $wrong ]] || { echo "FAILED: $wrong" >&2; exit 1; }
    rm "$root/$1"
}
sees 'a command' launcher/a.cc 'return ask("scontrol requeue", job_id_);'
sees 'a command with the number' launcher/a.cc 'return ask("scancel", job.id.number());'
sees 'advice' launcher/a.cc 'say("end it with scancel " + config.job_id);'
sees 'advice in two lines' launcher/a.cc $'say("end it "\n    "with scancel " +\n    input.id);'
sees 'a text for later' launcher/a.cc 'workers.slurm_job_id = input.slurm_job.number();'
sees 'the variable' launcher/a.cc 'auto id = value_of(environment, "SLURM_JOB_ID");'
sees 'a script' launcher/a.md '    scontrol requeue $SLURM_JOB_ID'
sees 'a script with braces' slurm/a.sbatch 'scancel "${SLURM_ARRAY_JOB_ID}"'
fine launcher/a.cc 'return ask("scontrol requeue", job.id.spelled());'
fine launcher/a.cc 'say("not requeued: scontrol requeue: " + requeued.error().sentence());'
fine launcher/a.cc '// "SLURM_JOB_ID" is set: "scancel " + id'
fine slurm/a.sbatch 'scancel "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"'
fine launcher/a.md "kill -USR1 \$(scontrol listpids \$SLURM_JOB_ID.0)"
fine slurm/a.sbatch 'srun ddprun train.py --output-dir "runs/$SLURM_ARRAY_JOB_ID/$SLURM_ARRAY_TASK_ID"'
