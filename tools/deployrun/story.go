package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const localImage = "castellan:local"

// operator is the user who follows the headers.
const operator = 1000

// session follows the header of one file in a folder of its own.
type session struct {
	dir   string // the operator's copy of the project
	work  string
	image *image
	made  map[string]*project
	kube  *cluster
}

func stories(root, work string) error {
	built, err := buildImage(root, work)
	if err != nil {
		return err
	}
	for _, story := range []struct {
		name string
		run  func(*session) error
	}{{"try.yaml", tryStory}, {"compose.yaml", composeStory}, {"kustomize-sqlite", sqliteStory},
		{"kustomize-postgresql", postgresStory}, {"kubernetes", kubernetesStory}} {
		began := time.Now()
		s := &session{image: built, made: map[string]*project{}, work: filepath.Join(work, story.name),
			dir: filepath.Join(work, "copy-"+story.name)}
		if err := os.Mkdir(s.work, 0o711); err != nil { // #nosec G301: containers mount what is below
			return err
		}
		if err := sh(fmt.Sprintf("mkdir %[1]s && cp -R %[2]s/deploy %[1]s && chown -R %[3]d:%[3]d %[1]s", s.dir, root,
			operator)); err != nil {
			return err
		}
		if err := story.run(s); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
		fmt.Printf("%-28s followed to the end (%s)\n", story.name, time.Since(began).Round(time.Second))
	}
	return nil
}

// words are the commands in the header of a file, indented by three spaces.
func (s *session) words(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "deploy", file))
	if err != nil {
		return "", err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		if word, ok := strings.CutPrefix(line, "#   "); ok {
			all = append(all, strings.TrimRight(word, "\n"))
		}
	}
	return strings.Join(all, "\n"), nil
}

// follow runs words as the operator would, in a folder of the copy. typed is what the operator types.
func (s *session) follow(words, dir, typed string) error {
	bin := filepath.Join(s.work, "bin")
	if _, err := os.Stat(bin); err != nil {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if err := sh(fmt.Sprintf("mkdir %[1]s && cp %[2]s %[1]s/docker && cp %[2]s %[1]s/kubectl && cp %[3]s/castellan %[1]s",
			bin, self, s.image.Root)); err != nil {
			return err
		}
	}
	socket, err := answer(s.work, s.do)
	if err != nil {
		return err
	}
	c := exec.Command("bash", "-eu", "-o", "pipefail", "-c", words)
	c.Dir = filepath.Join(s.dir, dir)
	c.Env = []string{"PATH=" + bin + ":" + strings.TrimPrefix(systemPath, "PATH="), socketVar + "=" + socket}
	c.Stdin = strings.NewReader(typed + "\n")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: operator, Gid: operator}}
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the words of the header: %w\n%s", err, out)
	}
	return nil
}

// do plays one call of docker or kubectl. A call that it does not know is an error.
func (s *session) do(c command) (string, error) {
	unknown := fmt.Errorf("deployrun does not know %s %q", c.Name, c.Args)
	if c.Name == "kubectl" {
		return s.kube.kubectl(c)
	}
	switch {
	case slices.Equal(c.Args, []string{"build", "-t", localImage, "."}):
		return "", nil // stories built it
	case c.Args[0] == "run":
		return s.dockerRun(c)
	case c.Args[0] == "compose":
		file, args := filepath.Join(c.Dir, "compose.yaml"), c.Args[1:]
		if args[0] == "--file" {
			file, args = filepath.Join(c.Dir, args[1]), args[2:]
		}
		p := s.made[file]
		switch {
		case slices.Equal(args, []string{"up", "--detach", "--wait"}):
			p, err := newProject(file, s.work, s.image)
			if err != nil {
				return "", err
			}
			s.made[file] = p
			for name := range p.Services {
				if err := p.up(name); err != nil {
					return "", err
				}
			}
			return "", nil
		case p == nil:
		case args[0] == "logs":
			all := ""
			for _, run := range p.runs {
				text, err := os.ReadFile(run.logFile())
				if err != nil {
					return "", err
				}
				all += string(text)
			}
			return all, nil
		case args[0] == "exec" && args[1] == "-T":
			return p.runs[args[2]].exec(c.Stdin, args[3:]...)
		case args[0] == "restart" && len(args) == 2:
			return "", p.restart(args[1])
		case slices.Equal(args, []string{"down", "--volumes"}):
			return "", p.down()
		}
	}
	return "", unknown
}

// dockerRun plays docker run --rm with a user, a folder and a working folder.
func (s *session) dockerRun(c command) (string, error) {
	run := &container{Name: "run", Root: s.image.Root, Env: s.image.Env, UID: s.image.UID, GID: s.image.GID}
	args := c.Args[1:]
	for strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "--rm":
			args = args[1:]
			continue
		case "-u":
			if _, err := fmt.Sscan(args[1], &run.UID); err != nil {
				return "", err
			}
		case "-v":
			from, to, _ := strings.Cut(args[1], ":")
			run.Mounts = append(run.Mounts, mount{From: from, To: to})
		case "-w":
			run.Dir = args[1]
		default:
			return "", fmt.Errorf("deployrun does not know docker run %s", args[0])
		}
		args = args[2:]
	}
	if args[0] != localImage {
		return "", fmt.Errorf("unknown image %s", args[0])
	}
	run.Args = append(slices.Clone(s.image.Start), args[1:]...)
	if err := os.RemoveAll(filepath.Join(s.work, "run.log")); err != nil {
		return "", err
	}
	if err := run.start(s.work); err != nil {
		return "", err
	}
	<-run.done
	text, err := os.ReadFile(run.logFile())
	if run.code != 0 {
		err = errors.Join(err, fmt.Errorf("docker run ended with %d", run.code))
	}
	return string(text), err
}
