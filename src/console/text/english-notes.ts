/** The texts of notes on objects in English. */
export const ENGLISH_NOTES = {
  'notes.added': 'Note saved',
  'notes.remove': 'Remove the note of {moment}',
  'notes.removeTitle': 'Remove this note?',
  'notes.save': 'Save note',
  'notes.text': 'Note',
  'notes.title': 'Notes on this interval ({count})',
  'notes.toHint': 'Empty: about a moment',
} as const;
