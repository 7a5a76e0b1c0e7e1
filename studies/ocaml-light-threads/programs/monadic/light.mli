(* What light weight threads offer to a program in indirect style: it says what comes after an operation that may
   have to wait. *)

type 'a io
type act

val ( >>= ) : 'a io -> ('a -> act) -> act

(* The end of a thread. *)
val fin : act
val spawn : (unit -> act) -> unit

(* Runs the threads until one of them stops all. *)
val start : unit -> unit
val stop : unit -> act

(* A place for one value, with at most one thread waiting to put and one waiting to take. *)
type 'a mvar

val make : unit -> 'a mvar
val put : 'a mvar -> 'a -> unit io
val take : 'a mvar -> 'a io
