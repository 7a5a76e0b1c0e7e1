"""The parts of `report`: what each section of it says, gathered from the store."""
