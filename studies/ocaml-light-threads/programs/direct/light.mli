(* The interface of light weight threads for programs in direct style: `put` and `take` return when they are done. *)

val spawn : (unit -> unit) -> unit

(* Runs the threads until one of them stops the program. *)
val start : unit -> unit
val stop : unit -> unit

(* A place for one value, with at most one thread waiting to put and one waiting to take. *)
type 'a mvar

val make : unit -> 'a mvar
val put : 'a mvar -> 'a -> unit
val take : 'a mvar -> 'a
