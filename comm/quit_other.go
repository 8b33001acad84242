//go:build !unix

package comm

var onQuit users

func watchQuit() (end func()) { return func() {} }
