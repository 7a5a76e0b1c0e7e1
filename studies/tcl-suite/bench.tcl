# bench.tcl ?-match GLOB? ?-iterations MOST? FILE ...: runs files of benchmarks in the form of tclbench, in this
# interpreter, and prints what tclbench's runbench.tcl prints with `-output list`: microseconds that an iteration took.
#
# A wrong answer, an error in a benchmark and a pattern that matches none end it with exit code 1: nothing is timed
# that did not do its work. Unlike tclbench it neither scales iterations nor starts other interpreters.

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
    # The first time compiles what it calls, and shows whether it is right.
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

# A name for a file that a benchmark may write, unlike any other.
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
    puts stderr "bench.tcl: no benchmark of [join $files {, }] is called $BENCH(MATCH)"
    exit 1
}

set number 0
puts [list $number VERSIONS: 1:[info patchlevel]]
foreach each $found { puts [list [incr number] {*}$each] }
puts [list $number BENCHMARKS 1:[info patchlevel]]
