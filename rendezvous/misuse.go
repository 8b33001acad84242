package rendezvous

// A MisuseError is what no waiting and no other attempt mends: somebody has to give other flags, or another secret.
type MisuseError struct{ Err error }

// Error is Err's.
func (e *MisuseError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *MisuseError) Unwrap() error { return e.Err }
