(* Numbers 2^a 3^b 5^c by their exponents; `rank` orders them, equal numbers have equal ranks.

   No big integers, because the study measures threads, and one of the compilers has no big integers. *)

type t = { rank : float; twos : int; threes : int; fives : int }

let make twos threes fives =
  let rank = (float twos *. log 2.) +. (float threes *. log 3.) +. (float fives *. log 5.) in
  { rank; twos; threes; fives }

let one = make 0 0 0
let double n = make (n.twos + 1) n.threes n.fives
let triple n = make n.twos (n.threes + 1) n.fives
let quintuple n = make n.twos n.threes (n.fives + 1)
let compare a b = compare (a.rank : float) b.rank
let answer n = (((n.twos * 1000) + n.threes) * 1000) + n.fives
