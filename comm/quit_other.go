//go:build !unix

package comm

type quitWatch struct{}

var onQuit quitWatch

func (quitWatch) enter() (leave func()) { return func() {} }
