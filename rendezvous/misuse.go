package rendezvous

// A MisuseError is an error that neither waiting nor another attempt can mend: the user must give other flags, or another secret.
type MisuseError struct{ Err error }

// Error returns the text of Err.
func (e *MisuseError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *MisuseError) Unwrap() error { return e.Err }
