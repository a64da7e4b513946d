//go:build !linux

package harness

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
