"""What params.yaml may hold: one class a section, one module a part of the paper."""
