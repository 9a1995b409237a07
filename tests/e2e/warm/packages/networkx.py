"""Stands in for a package of the list that imports much of Python's own."""
import asyncio
import concurrent.futures
import csv
import ctypes
import email.message
import http.client
import multiprocessing.pool
import queue
import sqlite3
import tempfile
import unittest.mock
import uuid
import xml.etree.ElementTree
