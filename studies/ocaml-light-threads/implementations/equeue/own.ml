(* Ocamlnet's event queue: a thread that waits is an event handler that accepts one event and ends. Each event is
   offered to every handler in turn. Events of one queue have one type, so their values are untyped inside. *)

type act = unit
type 'a io = ('a -> unit) -> unit
type 'a waiter = unit ref

let ( >>= ) io next = io next
let fin = ()
let queue : (unit ref * Obj.t) Equeue.t = Equeue.create ignore

let wait next =
  let waiter = ref () in
  Equeue.add_handler queue (fun _ (whose, value) ->
      if whose != waiter then raise Equeue.Reject;
      next (Obj.obj value);
      raise Equeue.Terminate);
  waiter

let wake waiter value = Equeue.add_event queue (waiter, Obj.repr value)

let spawn body =
  incr Measured.threads;
  wake (wait body) ()

exception Stop

let stop () = raise Stop
let start () = try Equeue.run queue with Stop -> ()
