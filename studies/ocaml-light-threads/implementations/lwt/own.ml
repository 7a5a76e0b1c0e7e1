(* Lwt, the library that developed from the promise monad. *)

type 'a io = 'a Lwt.t
type act = unit Lwt.t

let ( >>= ) = Lwt.bind
let return = Lwt.return
let fin = Lwt.return_unit
let gate, open_gate = Lwt.wait ()
let over, _ = Lwt.wait ()

exception Stop

let () = Lwt.async_exception_hook := raise

let spawn body =
  incr Measured.threads;
  Lwt.async (fun () -> Lwt.bind gate body)

let stop () = raise Stop

let start () =
  try
    Lwt.wakeup open_gate ();
    Lwt_main.run over
  with Stop -> ()

type 'a waiter = 'a Lwt.u

let wait () = Lwt.wait ()
let wake = Lwt.wakeup_later
