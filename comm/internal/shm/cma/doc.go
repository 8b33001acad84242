// Package cma copies memory of other processes of this machine with one system call each, process_vm_readv(2): Linux's Cross Memory
// Attach. The kernel allows it to processes of the same user, unless a policy forbids it (Yama, seccomp), or they are in another namespace
// of process numbers.
package cma
