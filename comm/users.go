package comm

import "sync"

// users are the open worlds that need something of which a process has one.
type users struct {
	mu    sync.Mutex
	count int
	end   func()
}

// enter calls begin for the first user, and what that returns when the last one has called leave.
func (u *users) enter(begin func() (end func())) (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count++; u.count == 1 {
		u.end = begin()
	}
	return sync.OnceFunc(u.leave)
}

func (u *users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count--; u.count == 0 {
		u.end()
	}
}
