package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/auth"
)

// userTokenName is the name of the file with the token of a user's nodes that meet on one machine and were given none.
const userTokenName = "loopback-token"

// userToken is the token by which the nodes of one user on this machine know each other when no token was given. It is in a file
// that only this user can read, and made by whoever needs it first. The file is in the user's home; without one, in a directory of
// the user's in /tmp. It does not depend on the environment, which may differ between the nodes.
func userToken() (token, file string, err error) { return userTokenOf(userTokenDirs()) }

// userTokenOf is the token in the first of the directories that can have one.
func userTokenOf(dirs []string) (token, file string, err error) {
	var problems []string
	for _, dir := range dirs {
		file := filepath.Join(dir, userTokenName)
		token, err := readUserToken(file)
		if errors.Is(err, fs.ErrNotExist) {
			if err = makeUserToken(dir, file); err == nil {
				token, err = readUserToken(file)
			}
		}
		if err == nil {
			return token, file, nil
		}
		problems = append(problems, err.Error())
	}
	return "", "", fmt.Errorf("there is no place for a token of your own (%s): give every node the same one, as in --rdzv-token-file=token", strings.Join(problems, "; "))
}

func userTokenDirs() (dirs []string) {
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		dirs = append(dirs, filepath.Join(u.HomeDir, ".config", "gorun"))
	}
	return append(dirs, filepath.Join("/tmp", "gorun-"+strconv.Itoa(os.Geteuid())))
}

// makeUserToken makes the file, unless another node is faster.
func makeUserToken(dir, file string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkOwn(dir); err != nil {
		return err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	temp, err := os.CreateTemp(dir, "."+userTokenName+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // the file has another link then
	_, err = temp.WriteString(hex.EncodeToString(secret) + "\n")
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// readUserToken reads the file if nobody else can have read or written it. After a power failure the file may be there and empty.
func readUserToken(file string) (string, error) {
	if err := checkOwn(filepath.Dir(file)); err != nil {
		return "", err
	}
	if err := checkOwn(file); err != nil {
		return "", err
	}
	token, err := readToken(file)
	if err == nil {
		err = auth.CheckSecret([]byte(token))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return token, nil
}

// settleToken gives nodes that meet on this machine, and were given no token, the user's. file is where it came from; empty: they
// have one, or know each other by certificates, or others can reach them, and a token is to be given.
func (o *options) settleToken() (file string, err error) {
	if o.token != "" || !o.meetsHere() {
		return "", nil
	}
	if o.token, file, err = userToken(); err != nil {
		return "", usagef("%w", err)
	}
	return file, nil
}

// meetsHere reports whether nodes know each other by a token and no other machine can reach where they meet.
func (o *options) meetsHere() bool {
	if o.backend == backendStatic {
		return isLoopback(o.master.Addr)
	}
	return o.hosted() && o.conf["ssl_cert"] == "" && !o.exposed()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
