"""How stages become a system: recipes, the one epoch, the gate and the audit."""
