"""What every implementation of a port promises, run over each of them and over its fake."""
