# Start JmhSuite.java with the JDK and the JMH of a revision.
#
#     jmh_suite.sh VERSION SCRATCH DIRECTORY MODE REQUEST FILE… -- JVM_OPTION…
#
# The files, relative to the working directory, are jars and directories of classes. SCRATCH is an empty directory.
# Benchmarks run in DIRECTORY. MODE is list, run or serve. The values of list and run are written to a file first,
# because the JVM prints warnings to its standard output.
set -eu
version=$1 scratch=$2 directory=$3 mode=$4 request=$5
shift 5
files=
while [ "$1" != -- ]; do
    if [ -e "$1" ]; then files=$files$PWD/$1:; fi
    shift
done
shift
if [ -z "$files" ]; then
    if [ "$mode" = run ]; then exit 0; fi
    echo "the build has no file that matches the program of the suite" >&2
    exit 1
fi
cd "./$directory"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
"${java}c" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -proc:none -nowarn -encoding UTF-8 -cp "$files" -d "$scratch" "${0%/*}/JmhSuite.java" >&2
files=$files$scratch
if [ "$mode" = list ]; then
    "$java" "$@" -cp "$files" JmhSuite "$version" list "$scratch/result" >&2
else
    "$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$files" JmhSuite "$version" options "$scratch" >&2
    while IFS= read -r option; do set -- "$@" "$option"; done <"$scratch/options"
    set -- "$@" -cp "$files" JmhSuite "$version"
    if [ "$mode" = serve ]; then exec "$java" "$@" serve >&2; fi
    "$java" "$@" run "$scratch/result" "$request" >&2
fi
cat "$scratch/result"
