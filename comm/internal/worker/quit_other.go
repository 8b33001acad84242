//go:build !unix

package worker

func (p *Process) watchQuit() (end func()) { return func() {} }
