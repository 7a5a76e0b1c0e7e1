"""Results in the forms that other programs and documents take; text in, text out."""
