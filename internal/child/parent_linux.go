package child

import "syscall"

// dieWithParent makes the kernel kill a child when the thread that started it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
