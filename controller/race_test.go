//go:build race

package controller

const raced = true
