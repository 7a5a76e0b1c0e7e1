(* OCaml 5: waiting is an effect; its handler receives the rest of the thread, which is a separate stack. *)

open Effect
open Effect.Deep

type 'a waiter = ('a, unit) continuation
type _ Effect.t += Suspend : ('a waiter -> unit) -> 'a Effect.t

let suspend give = perform (Suspend give)
let ready : (unit -> unit) Queue.t = Queue.create ()

let handler =
  {
    retc = ignore;
    exnc = raise;
    effc =
      (fun (type a) (effect_ : a Effect.t) ->
        match effect_ with
        | Suspend give -> Some (fun (waiter : (a, unit) continuation) -> give waiter)
        | _ -> None);
  }

let spawn body =
  incr Measured.threads;
  Queue.push (fun () -> match_with body () handler) ready

exception Stop

let stop () = raise Stop

let start () =
  try
    while true do
      (Queue.pop ready) ()
    done
  with Queue.Empty | Stop -> ()

let wake waiter value = Queue.push (fun () -> continue waiter value) ready
