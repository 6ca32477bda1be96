package main

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// faultsInScript returns the possible faults in a TypeScript file without JSX, as prettier formats it. It uses tokens:
// a fault in a type does not compile and is not counted.
func faultsInScript(file string, source []byte) []mutant {
	s := script{file: file, source: source, code: codeOf(source)}
	s.operators()
	s.words()
	s.conditions()
	s.statements()
	slices.SortStableFunc(s.all, func(a, b mutant) int { return a.start - b.start })
	return s.all
}

type script struct {
	file   string
	source []byte
	code   []byte // the source with spaces for comments and quoted text
	all    []mutant
}

func (s *script) add(rule string, start, end int, text string) {
	s.all = append(s.all, mutant{file: s.file, line: 1 + bytes.Count(s.source[:start], []byte("\n")), rule: rule,
		start: start, end: end, from: oneLine(string(s.source[start:end])), text: text})
}

// codeOf blanks everything except code: comments, and the inside of strings, templates and regular expressions.
func codeOf(source []byte) []byte {
	code := bytes.Clone(source)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if code[i] != '\n' {
				code[i] = ' '
			}
		}
	}
	for i := 0; i < len(source); {
		rest := source[i:]
		switch c := source[i]; {
		case bytes.HasPrefix(rest, []byte("//")):
			end := i + len(rest)
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				end = i + n
			}
			blank(i, end)
			i = end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := i + bytes.Index(rest, []byte("*/")) + 2
			blank(i, end)
			i = end
		case c == '\'' || c == '"' || c == '`' || c == '/' && beginsPattern(code[:i]):
			end := closing(source, i)
			blank(i+1, end)
			i = end + 1
		default:
			i++
		}
	}
	return code
}

// beginsPattern reports whether a slash after this code begins a regular expression and divides nothing.
func beginsPattern(before []byte) bool {
	before = bytes.TrimRight(before, " \n")
	return len(before) == 0 || bytes.IndexByte([]byte("(,=:[!&|?{};+"), before[len(before)-1]) >= 0 ||
		bytes.HasSuffix(before, []byte("return"))
}

// closing is where what begins at i with a quote or a slash ends.
func closing(source []byte, i int) int {
	quote, class := source[i], false
	for j := i + 1; j < len(source); j++ {
		switch c := source[j]; {
		case c == '\\':
			j++
		case quote == '/' && c == '[':
			class = true
		case quote == '/' && c == ']':
			class = false
		case c == quote && !class:
			return j
		}
	}
	return len(source) - 1
}

var (
	operator = regexp.MustCompile(` (===|!==|<=|>=|<|>|&&|\|\||\+|-) `)
	flip     = map[string]string{"===": "!==", "!==": "===", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
		"&&": "||", "||": "&&"}
	word       = regexp.MustCompile(`[\w$.]+`)
	condition  = regexp.MustCompile(`\b(?:if|while) \(`)
	statement  = regexp.MustCompile(`(?m)^ +([\w$.?!\[\]]+)(\(.*\)| [-+*]?= .*|\+\+|--);$`)
	beginsWord = regexp.MustCompile(`^(?:const|let|var|return|import|export|type|throw|case|default|if|for|while|` +
		`function)\b`)
	leaves = regexp.MustCompile(`^(?:return|continue|break|throw)\b`)
)

func (s *script) operators() {
	for _, m := range operator.FindAllSubmatchIndex(s.code, -1) {
		op := string(s.code[m[2]:m[3]])
		to := flip[op]
		if to == "" {
			text := strings.ContainsRune("'\"`", rune(s.code[m[0]-1])) || strings.ContainsRune("'\"`", rune(s.code[m[1]]))
			if to = map[string]string{"+": "-", "-": "+"}[op]; text {
				continue // it joins texts
			}
		}
		s.add("swap operator", m[2], m[3], to)
	}
}

func (s *script) words() {
	for _, m := range word.FindAllIndex(s.code, -1) {
		text := string(s.code[m[0]:m[1]])
		if to := map[string]string{"true": "false", "false": "true"}[text]; to != "" {
			s.add("flip boolean", m[0], m[1], to)
		}
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			s.add("constant + 1", m[0], m[1], strconv.FormatInt(n+1, 10))
			if n != 0 {
				s.add("constant - 1", m[0], m[1], strconv.FormatInt(n-1, 10))
			}
		}
	}
}

// conditions negates conditions and empties guards that leave.
func (s *script) conditions() {
	for _, m := range condition.FindAllIndex(s.code, -1) {
		from := m[1]
		to := s.matching(from - 1)
		s.add("negate condition", from, to, "!("+string(s.source[from:to])+")")
		body := to + 1 + len(" ")
		switch rest := s.code[min(body, len(s.code)):]; {
		case leaves.Match(rest):
			s.add("remove early return", body, body+bytes.IndexByte(rest, ';')+1, "{}")
		case bytes.HasPrefix(rest, []byte("{")):
			end := s.matching(body)
			lines := bytes.Split(bytes.TrimSpace(s.code[body+1:end]), []byte("\n"))
			last := bytes.TrimSpace(lines[len(lines)-1])
			if leaves.Match(last) && !bytes.HasPrefix(s.code[end+1:], []byte(" else")) {
				s.add("remove early return", body, end+1, "{}")
			}
		}
	}
}

// matching is where the bracket at i is closed.
func (s *script) matching(i int) int {
	depth := 0
	for j := i; j < len(s.code); j++ {
		switch s.code[j] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(s.code) - 1
}

// statements removes calls and assignments that take one line.
func (s *script) statements() {
	for _, m := range statement.FindAllIndex(s.code, -1) {
		text := bytes.TrimSpace(s.code[m[0]:m[1]])
		balanced := bytes.Count(text, []byte("(")) == bytes.Count(text, []byte(")")) &&
			bytes.Count(text, []byte("{")) == bytes.Count(text, []byte("}"))
		if balanced && !beginsWord.Match(text) {
			s.add("remove statement", m[1]-len(text), m[1], "")
		}
	}
}
