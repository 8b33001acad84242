package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// The names of the files with the user's own tokens.
const (
	loopbackName   = "loopback-token"
	statusPageName = "status-page-token"
)

// LoopbackToken returns the user's own token, and the path of its file. The user's programs on this machine use it to recognize each
// other if they were given no token. Only this user can read the file. The first program that needs it creates it, in
// $XDG_CONFIG_HOME/gorun or ~/.config/gorun, or, if that is not possible, in a directory of the user in /tmp.
func LoopbackToken() (token, file string, err error) { return loopbackIn(directories()) }

func loopbackIn(dirs iter.Seq[string]) (token, file string, err error) {
	if token, file, err = ownIn(loopbackName, dirs); err != nil {
		err = fmt.Errorf("%w, and your own cannot be used (%w)", ErrNoToken, err)
	}
	return token, file, err
}

// StatusPageToken returns the token of people who look at the status pages of this user's jobs, and the path of its file, which is beside that of
// Loopback, and is created in the same way.
func StatusPageToken() (token, file string, err error) { return ownIn(statusPageName, directories()) }

// ownIn returns the token in the first of the directories that has one or in which it can create one.
func ownIn(name string, dirs iter.Seq[string]) (token, file string, err error) {
	var problems []string
	for dir := range dirs {
		file := filepath.Join(dir, name)
		token, err := readOwn(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			if err = makeOwn(dir, file); err == nil {
				token, err = readOwn(dir, file)
			}
		}
		if err == nil {
			return token, file, nil
		}
		problems = append(problems, err.Error())
	}
	return "", "", errors.New(strings.Join(problems, "; "))
}

// directories yields the directories for the file, the best one first. It uses the environment only if that names a directory of this
// user, because sudo may keep another user's. The home directory in the user database comes late, since looking it up may take a
// request over the network.
func directories() iter.Seq[string] {
	return func(yield func(string) bool) {
		config, home, uid := os.Getenv("XDG_CONFIG_HOME"), os.Getenv("HOME"), strconv.Itoa(os.Geteuid())
		isTried := isOurDirectory(home)
		if isOurDirectory(config) && !yield(filepath.Join(config, "gorun")) || isTried && !yield(inHome(home)) {
			return
		}
		u, err := user.LookupId(uid)
		if err != nil || !filepath.IsAbs(u.HomeDir) || isTried && u.HomeDir == home {
			u = &user.User{}
		}
		if exists(u.HomeDir) && !yield(inHome(u.HomeDir)) { // we do not make homes
			return
		}
		yield(filepath.Join("/tmp", "gorun-"+uid))
	}
}

func inHome(home string) string { return filepath.Join(home, ".config", "gorun") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isOurDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && info.IsDir() && isOurs(info)
}

// makeOwn creates the file. If another program has created it in the meantime, that file stays.
func makeOwn(dir, file string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := CheckOwnDir(dir); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // the token has its final name by then
	_, err = temp.WriteString(NewSecret() + "\n")
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// readOwn reads the file. It returns an error if another user can have read or written it, or if the file is empty, as it may
// be after a power failure.
func readOwn(dir, path string) (string, error) {
	if err := CheckOwnDir(dir); err != nil {
		return "", err
	}
	file, err := OpenOwn(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	token, err := readToken(file)
	if err == nil {
		err = CheckSecret([]byte(token))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return token, nil
}
