"""What a study is: frozen values, the standard library only, no input or output."""
