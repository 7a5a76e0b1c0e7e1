(* The interface of light weight threads for programs in indirect style: operations that may wait receive their
   continuation. *)

type 'a io
type act

val ( >>= ) : 'a io -> ('a -> act) -> act

(* The end of a thread. *)
val fin : act
val spawn : (unit -> act) -> unit

(* Runs the threads until one of them stops the program. *)
val start : unit -> unit
val stop : unit -> act

(* A place for one value, with at most one thread waiting to put and one waiting to take. *)
type 'a mvar

val make : unit -> 'a mvar
val put : 'a mvar -> 'a -> unit io
val take : 'a mvar -> 'a io
