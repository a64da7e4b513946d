package harness

import "syscall"

// dieWithUs has a process end when the test binary does, whatever ends that;
// and keeps a terminal's Ctrl-C for us, who stop processes in order.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
