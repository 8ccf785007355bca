"""Encounters at blind crossings, drawn at random: who crashes under which plan, and how fast."""
