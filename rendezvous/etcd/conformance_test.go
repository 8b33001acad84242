package etcd

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/rendezvoustest"
)

// A port is a socket that is bound and does not listen, as launcher's is.
type port struct {
	*os.File
	number int
}

func (p port) Number() int { return p.number }

func reserve(_ string, number int) (rendezvous.Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}),
	); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return port{os.NewFile(uintptr(fd), "port"), name.(*syscall.SockaddrInet4).Port}, nil
}

func TestConformance(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for name, port := range map[string]int{"any port": 0, "a fixed port": rendezvoustest.FreePort(t, "127.0.0.1")} {
		t.Run(name, func(t *testing.T) {
			rendezvoustest.Run(t, func(t *testing.T, maxRestarts int) rendezvous.Rendezvous {
				r, err := New(Config{
					Client: client, Config: rendezvous.Config{
						RunID: strings.ReplaceAll(t.Name(), "/", " "), Rules: rendezvous.Rules{Min: 1, Max: 1, MaxRestarts: maxRestarts},
						MasterPort: port, Reserve: reserve,
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				return r
			})
		})
	}
}
