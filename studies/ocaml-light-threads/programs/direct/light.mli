(* What light weight threads offer to a program in direct style: `put` and `take` return when they are done. *)

val spawn : (unit -> unit) -> unit

(* Runs the threads until one of them stops all. *)
val start : unit -> unit
val stop : unit -> unit

(* A place for one value, with at most one thread waiting to put and one waiting to take. *)
type 'a mvar

val make : unit -> 'a mvar
val put : 'a mvar -> 'a -> unit
val take : 'a mvar -> 'a
