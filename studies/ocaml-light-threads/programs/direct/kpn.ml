(* Hamming numbers in order, from a Kahn network: three threads multiply by 2, 3 and 5, two merge the results. *)

open Light

let rec multiply by source target () =
  put target (by (Fifo.pull source));
  multiply by source target ()

let rec merge a b target x y =
  let order = Hamming.compare x y in
  put target (if order <= 0 then x else y);
  let x = if order <= 0 then take a else x in
  let y = if order >= 0 then take b else y in
  merge a b target x y

let merged a b =
  let target = make () in
  spawn (fun () ->
      let x = take a in
      let y = take b in
      merge a b target x y);
  target

let multiplied by =
  let source = Fifo.make () and target = make () in
  spawn (multiply by source target);
  (source, target)

let () =
  let last = ref Hamming.one in
  let by_two, twos = multiplied Hamming.double in
  let by_three, threes = multiplied Hamming.triple in
  let by_five, fives = multiplied Hamming.quintuple in
  let numbers = merged twos (merged threes fives) in
  let rec count left number =
    last := number;
    if left = 1 then stop ()
    else begin
      Fifo.push by_two number;
      Fifo.push by_three number;
      Fifo.push by_five number;
      count (left - 1) (take numbers)
    end
  in
  spawn (fun () -> count Measured.size Hamming.one);
  start ();
  Measured.report ~answer:(Hamming.answer !last)
