package main

import (
	"encoding/json"
	"os"
	"time"
)

// cast is a recording of what is printed, in the format asciicast v2: a line for the
// terminal, and one for each piece of text, with the seconds since it began.
type cast struct {
	file  *os.File
	began time.Time
}

func record(path string) (*cast, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	c := &cast{file: file, began: time.Now()}
	return c, c.line(map[string]int{"version": 2, "width": 100, "height": 30})
}

func (c *cast) Write(text []byte) (int, error) {
	return len(text), c.line([]any{time.Since(c.began).Seconds(), "o", string(text)})
}

func (c *cast) Close() error { return c.file.Close() }

func (c *cast) line(of any) error {
	line, err := json.Marshal(of)
	if err != nil {
		return err
	}
	_, err = c.file.Write(append(line, '\n'))
	return err
}
