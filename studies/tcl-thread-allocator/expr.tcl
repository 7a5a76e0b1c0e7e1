# A small benchmark of expr: integers, reals, lists, strings, and newly compiled expressions. Each result is a new object,
# so it uses mostly the allocator of objects. Its result is one number, which is always the same.

proc integers {n} {
    set sum 0
    for {set i 0} {$i < $n} {incr i} { set sum [expr {$sum + $i * 3 - $i % 7}] }
    return $sum
}

proc reals {n} {
    set sum 0.0
    for {set i 1} {$i <= $n} {incr i} { set sum [expr {$sum + 1.0 / $i}] }
    return $sum
}

proc kept {n} {
    set list {}
    for {set i 0} {$i < $n} {incr i} { lappend list [expr {$i * 1.5}] }
    set sum 0
    foreach item $list { set sum [expr {$sum + $item}] }
    return $sum
}

proc strings {n} {
    set equal 0
    for {set i 0} {$i < $n} {incr i} { incr equal [expr {"a$i" eq "a5"}] }
    return $equal
}

proc compiled {n} {
    for {set i 0} {$i < $n} {incr i} { set last [expr "$i + 1"] }
    return $last
}

format %.6f [expr {
    [integers 60000] + [reals 60000] + [kept 20000] + [strings 40000] + [compiled 6000]
}]
