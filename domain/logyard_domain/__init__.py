"""Pure facts and rules of Logyard: no clock, no dice, no I/O."""
