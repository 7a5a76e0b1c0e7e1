(* A queue without a limit between one thread that pushes and one that pulls: a chain of mvars, the last one empty. *)

open Light

type 'a link = Link of 'a * 'a link mvar
type 'a t = { mutable first : 'a link mvar; mutable last : 'a link mvar }

let make () =
  let empty = make () in
  { first = empty; last = empty }

let push fifo value =
  let hole = fifo.last and next = Light.make () in
  fifo.last <- next;
  put hole (Link (value, next))

let pull fifo =
  let (Link (value, next)) = take fifo.first in
  fifo.first <- next;
  value
