//go:build !linux

package beforemain
