# bench.tcl ?-match GLOB? ?-iterations MOST? FILE ...: runs files of benchmarks in the format of tclbench, in this
# interpreter, and prints the same as tclbench's runbench.tcl with `-output list`: microseconds per iteration.
#
# It exits with 1 after a wrong answer, an error in a benchmark, or a pattern without a match, so only correct benchmarks
# have times. Unlike tclbench, it neither scales iterations nor starts other interpreters.

array set BENCH {MATCH * ITERS 1000 THREADED 0 ERRORS 1}
set BENCH(INTERP) [info nameofexecutable]
set found {}

proc bench {args} {
    global BENCH found
    set iterations $BENCH(ITERS)
    array set script {pre {} body {} post {}}
    foreach {option value} $args {
        switch -glob -- $option {
            -de* { set name $value }
            -it* { set iterations [expr {min($value, $BENCH(ITERS))}] }
            -pr* { set script(pre) $value }
            -bo* { set script(body) $value }
            -po* { set script(post) $value }
            -res* { set wanted $value }
            default { error "unknown option $option" }
        }
    }
    if {![string match $BENCH(MATCH) $name]} { return }
    uplevel #0 $script(pre)
    # The first run compiles the procedures, and its answer is checked.
    set code [catch {uplevel #0 $script(body)} answer]
    if {$code == 666} {
        lappend found [list $name $answer]
    } elseif {$code != 0} {
        error "$name: $answer" "$name: $::errorInfo"
    } elseif {[info exists wanted] && $answer ne $wanted} {
        error "$name: gives \"$answer\", not \"$wanted\""
    } else {
        lappend found [list $name [lindex [uplevel #0 [list time $script(body) $iterations]] 0]]
    }
    uplevel #0 $script(post)
}

# Returns a unique name of a file that a benchmark may write.
proc bench_tmpfile {} {
    global BENCH env
    set directory [expr {[info exists env(TMPDIR)] ? $env(TMPDIR) : "/tmp"}]
    return [file join $directory tclbench[pid]-[incr BENCH(uniqid)].dat]
}

proc bench_rm {args} {
    foreach file $args { catch {file delete $file} }
}

set files {}
while {[llength $argv]} {
    set argv [lassign $argv word]
    switch -glob -- $word {
        -match { set argv [lassign $argv BENCH(MATCH)] }
        -iter* { set argv [lassign $argv BENCH(ITERS)] }
        default { lappend files $word }
    }
}
foreach file $files { source $file }
if {![llength $found]} {
    puts stderr "bench.tcl: no benchmark of [join $files {, }] matches $BENCH(MATCH)"
    exit 1
}

set number 0
puts [list $number VERSIONS: 1:[info patchlevel]]
foreach each $found { puts [list [incr number] {*}$each] }
puts [list $number BENCHMARKS 1:[info patchlevel]]
