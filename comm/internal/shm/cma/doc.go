// Package cma copies memory of another process on this machine with one system call, process_vm_readv(2): Linux's Cross Memory
// Attach. The kernel allows it to processes of one user in one PID namespace, unless a policy forbids it: Yama's ptrace_scope, or seccomp.
package cma
