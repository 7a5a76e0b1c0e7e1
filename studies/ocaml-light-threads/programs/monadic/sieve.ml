(* Prime numbers: each has a thread that passes on the numbers that it does not divide. Ends with the first prime that is
   not below the size. *)

open Light

let rec integers target n () = put target n >>= integers target (n + 1)

let rec filter prime source target () =
  take source >>= fun n ->
  if n mod prime <> 0 then put target n >>= filter prime source target else filter prime source target ()

let rec sift source primes () =
  take source >>= fun prime ->
  put primes prime >>= fun () ->
  if prime < Measured.size then begin
    let rest = make () in
    spawn (filter prime source rest);
    sift rest primes ()
  end
  else fin

let () =
  let found = ref 0 and last = ref 0 in
  let all = make () and primes = make () in
  let rec output () =
    take primes >>= fun prime ->
    last := prime;
    incr found;
    if prime < Measured.size then output () else stop ()
  in
  spawn (integers all 2);
  spawn (sift all primes);
  spawn output;
  start ();
  Measured.report ~answer:((!last * 1_000_000) + !found)
