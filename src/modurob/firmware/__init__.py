"""The C runtime with which a robot models itself: sources for microcontrollers."""
